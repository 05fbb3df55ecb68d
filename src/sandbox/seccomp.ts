/**
 * A seccomp filter in the kernel's classic BPF: system calls that no program of a task needs, and that most ways out of
 * a namespace have gone through, fail with EPERM. Numbers: x86-64, arm64 (asm/unistd.h).
 */
const DENIED: Readonly<Record<string, readonly [x64: number, arm64: number]>> = {
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  personality: [135, 92],
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  memfd_create: [319, 279],
  memfd_secret: [447, 447],
  unshare: [272, 97],
  setns: [308, 268],
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  name_to_handle_at: [303, 264],
  open_by_handle_at: [304, 265],
  kexec_load: [246, 104],
  init_module: [175, 105],
  finit_module: [313, 273],
};

const LOAD = 0x20; // A = the 32 bits at this offset of struct seccomp_data
const IF_EQUAL = 0x15;
const IF_NOT_LESS = 0x35;
const RETURN = 0x06;
const [NUMBER, ARCHITECTURE] = [0, 4];
const ALLOW = 0x7fff0000;
const EPERM = 0x00050001;
const AUDIT = { x64: 0xc000003e, arm64: 0xc00000b7 };
/** Numbers from here on are those of x32, a second way to the same calls. */
const X32 = 0x40000000;

/** The filter for this machine, as bwrap --seccomp reads it; undefined for other architectures. */
export function seccompFilter(architecture: string = process.arch): Buffer | undefined {
  if (architecture !== 'x64' && architecture !== 'arm64') return undefined;
  const denied = Object.values(DENIED).map(([x64, arm64]) => (architecture === 'x64' ? x64 : arm64));
  // Jumps count the instructions that are passed over; the last one denies, the one before allows.
  const last = denied.length + 1;
  const program = [
    [LOAD, 0, 0, ARCHITECTURE],
    [IF_EQUAL, 0, last + 2, AUDIT[architecture]],
    [LOAD, 0, 0, NUMBER],
    [IF_NOT_LESS, last, 0, X32],
    ...denied.map((number, i) => [IF_EQUAL, denied.length - i, 0, number]),
    [RETURN, 0, 0, ALLOW],
    [RETURN, 0, 0, EPERM],
  ] as const;
  const bytes = Buffer.alloc(8 * program.length);
  for (const [i, [code, yes, no, value]] of program.entries()) {
    bytes.writeUInt16LE(code, 8 * i);
    bytes.writeUInt8(yes, 8 * i + 2);
    bytes.writeUInt8(no, 8 * i + 3);
    bytes.writeUInt32LE(value, 8 * i + 4);
  }
  return bytes;
}
