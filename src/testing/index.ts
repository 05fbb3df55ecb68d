export { BYTE_SPECIAL, byteRenderer } from './byte-tokenizer.ts';
