/** CRC-32C (Castagnoli, reflected polynomial 0x82f63b78) of `bytes`, unsigned. `crc32c('123456789')` is 0xe3069283. */
export function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = TABLE[(crc ^ byte) & 0xff]! ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

/**
 * The checksum as TFRecord files store it: rotated right by 15 bits, plus a constant.
 * Source: https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details.
 */
export function maskedCrc32c(bytes: Uint8Array): number {
  const crc = crc32c(bytes);
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  return crc;
});
