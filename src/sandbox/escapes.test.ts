import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, mkdtempSync, openSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { NO_SANDBOX, opened } from '../../tests/support/sandbox.ts';

describe.skipIf(NO_SANDBOX)('an escape', () => {
  const sandbox = opened({ timeoutMs: 20_000, outputBytes: 4096 });
  const python = (source: string) => sandbox.run({ language: 'python', source });
  const javascript = (source: string) => sandbox.run({ language: 'javascript', source });

  const secret = join(mkdtempSync(join(tmpdir(), 'secret-')), 'key.txt');
  writeFileSync(secret, 'hunter2');
  afterAll(() => rmSync(join(secret, '..'), { recursive: true }));
  afterEach(() => vi.unstubAllEnvs());

  it.each([
    secret,
    '/etc/passwd',
    '/etc/shadow',
    '/root',
    '/home',
    process.cwd(),
    '/proc/1/root/etc/passwd',
    '/sys',
    '/var',
  ])('to a file: %s is not there', async path => {
    const source = `import os\nprint(os.path.lexists(${JSON.stringify(path)}))\nopen(${JSON.stringify(path)})`;
    const { ending, stdout, stderr } = await python(source);
    expect({ ending, found: stdout }).toEqual({ ending: 'error', found: 'False\n' });
    expect(stderr).toMatch(/FileNotFoundError|PermissionError/);
    const { stderr: said } = await javascript(`require('fs').readFileSync(${JSON.stringify(path)})`);
    expect(said).toMatch(/ENOENT|EACCES/);
  });

  it('through a symbolic link leads nowhere, and a link up leads to what is inside', async () => {
    const source = `import os
os.symlink(${JSON.stringify(secret)}, "link")
os.symlink("../../../..", "up")
print(sorted(os.listdir("up")))
print(os.path.exists("link"))
os.rename("link", "/usr/lib/link")`;
    const { stdout, stderr } = await python(source);
    const [inside, exists] = stdout.trim().split('\n');
    expect(JSON.parse(inside!.replaceAll("'", '"'))).not.toContain('home');
    expect(exists).toBe('False');
    expect(stderr).toMatch(/Read-only file system|cross-device|Invalid cross/);
  });

  it('by writing outside of the working directory', async () => {
    const source = `for path in ["/x", "/usr/lib/x", "/dev/x", "/proc/sys/kernel/hostname", "/etc/x", "/lib/x"]:
  try: open(path, "w"); print(path)
  except OSError: pass`;
    expect(await python(source)).toMatchObject({ ending: 'ok', stdout: '' });
  });

  it('to the environment: it has three variables and none of ours', async () => {
    vi.stubEnv('OPENAI_API_KEY', 'hunter2');
    const { stdout } = await python('import os; print(sorted(os.environ.items()))');
    expect(stdout).not.toContain('hunter2');
    const names = [...stdout.matchAll(/\('(\w+)'/g)].map(([, name]) => name);
    expect(names).toEqual(['HOME', 'LANG', 'PATH', 'PWD', 'PYTHONHASHSEED']);
    expect((await javascript('console.log(Object.keys(process.env).sort().join())')).stdout).toBe(
      'HOME,LANG,PATH,PWD\n',
    );
    const others =
      'import glob\nfor p in glob.glob("/proc/*/environ"):\n  try: print(open(p).read())\n  except OSError: pass';
    expect((await python(others)).stdout).not.toContain('hunter2');
  });

  it('to descriptors that tokenloop has open', async () => {
    const descriptor = openSync(secret, 'r');
    // As a parent process would have handed it on: without close-on-exec, and past those that Node looks after itself.
    const stdio = ['ignore', 'pipe', 'inherit', ...Array(37).fill('ignore'), descriptor];
    const program = ['--import', 'tsx', '-e', PROGRAM_THAT_LISTS_DESCRIPTORS];
    const inherited = spawnSync(process.execPath, program, { stdio, encoding: 'utf8' });
    closeSync(descriptor);
    expect(inherited.stdout).toMatch(/^40 \/dev\/null$/m);
    expect(inherited.stdout).not.toMatch(/key\.txt|filter/);
  });

  it('to the network', async () => {
    const source = `import socket
print([name for _, name in socket.if_nameindex()])
for family, address in ((socket.AF_INET, ("1.1.1.1", 53)), (socket.AF_INET, ("169.254.169.254", 80)), (socket.AF_INET6, ("2606:4700::1", 53))):
  try: socket.socket(family).connect(address); print("connected")
  except OSError as error: print(error.errno)
try: print(socket.getaddrinfo("example.com", 80))
except OSError: print("no names")`;
    const { stdout } = await python(source);
    expect(stdout).toMatch(/^\['lo'\]\n(\d+\n){3}no names\n$/);
  });

  it('to services of this machine', async () => {
    const { createServer } = await import('node:net');
    const server = createServer(socket => socket.end('hunter2'));
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    const { stderr } = await python(`import socket; print(socket.create_connection(("127.0.0.1", ${port})).recv(9))`);
    server.close();
    expect(stderr).toContain('ConnectionRefusedError');
  });

  it('by a fork bomb: it gets so many processes and no more, and none is left', async () => {
    const bomb = `import os, time
n = 0
while True:
  try:
    if os.fork() == 0:
      while True:
        try: os.fork()
        except OSError: time.sleep(60)
    n += 1
  except OSError: break
os.write(1, b"held" if n < 32 else b"not held")
time.sleep(60)`;
    const brief = opened({ timeoutMs: 3000 });
    const before = processes();
    expect(await brief.run({ language: 'python', source: bomb })).toMatchObject({
      ending: 'timeout',
      stdout: 'held',
    });
    await brief.close();
    expect(processes().filter(pid => !before.includes(pid) && isOurs(pid))).toEqual([]);
  });

  it('by a process that survives it', async () => {
    const source = `import os
if os.fork() == 0:
  os.setsid()
  if os.fork() == 0:
    while True: pass
print("gone")`;
    const { ending, stdout } = await python(source);
    // `gone` is printed by the child that forked, too.
    expect({ ending, stdout: stdout.trim().split('\n')[0] }).toEqual({ ending: 'ok', stdout: 'gone' });
    expect(
      processes()
        .filter(isOurs)
        .filter(pid => commandOf(pid).includes('setsid')),
    ).toEqual([]);
  });

  it('by memory: of one process, of several together, in files, in shared memory', async () => {
    expect(await python('x = "x" * 10**9')).toMatchObject({ ending: 'memory' });
    const several = `import os, time
for i in range(9):
  if os.fork() == 0:
    x = b"x" * 100_000_000
    time.sleep(60)
time.sleep(60)`;
    expect(await python(several)).toMatchObject({ ending: 'memory' });
    const full = 'import os\nfor i in range(99):\n  open(f"{PLACE}/{i}", "wb").write(b"x" * 10**6)';
    for (const place of ['/work', '/dev/shm']) {
      const { ending, stderr } = await python(full.replace('{PLACE}', place));
      expect(ending).toBe('error');
      expect(stderr).toContain('No space left on device');
    }
    const { stderr } = await python('import mmap; m = mmap.mmap(-1, 10**9)');
    expect(stderr).toMatch(/Cannot allocate memory|MemoryError/);
  });

  it('by a flood of output', async () => {
    const flood = await python('while True: print("x" * 1000)');
    expect(flood).toMatchObject({ ending: 'output', cut: true });
    expect(flood.stdout.length).toBeLessThan(5000);
    expect(flood.stdout).toMatch(/x\n\[\.\.\. \d+ bytes cut\]$/);
    const long = await python('import sys\nprint("x" * 100_000)\nprint("y" * 100_000, file=sys.stderr)');
    expect(long).toMatchObject({ ending: 'ok', cut: true });
    expect(long.stdout).toBe(`${'x'.repeat(4096)}\n[... 95905 bytes cut]`);
    expect(long.stderr).toBe(`${'y'.repeat(4096)}\n[... 95905 bytes cut]`);
  });

  it('by new namespaces, mounts, capabilities or other users', async () => {
    const source = `import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print([libc.unshare(flag) for flag in (0x10000000, 0x00020000, 0x20000000)])
print(libc.mount(b"none", b"/work", b"tmpfs", 0, None), libc.setuid(0), libc.chroot(b"/work"))
print(*[line.split()[1] for line in open("/proc/self/status") if line.startswith(("Cap", "NoNewPrivs"))])`;
    const { stdout } = await python(source);
    expect(stdout).toBe(
      '[-1, -1, -1]\n-1 -1 -1\n0000000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000 1\n',
    );
  });

  it('by system calls that no task needs: they are not permitted', async () => {
    const source = `import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
x64 = platform.machine() == "x86_64"
for number in (101 if x64 else 117, 250 if x64 else 219, 321 if x64 else 280, 425, 323 if x64 else 282):
  libc.syscall(number, 0, 0, 0, 0, 0); print(ctypes.get_errno(), end=" ")
try: os.memfd_create("x")
except OSError as error: print(error.errno)`;
    expect((await python(source)).stdout).toBe('1 1 1 1 1 1\n');
  });

  it('by signals to processes outside', async () => {
    const { stdout } = await python(
      'import os\ntry: os.kill(-1, 9)\nexcept OSError as e: print(type(e).__name__)\nprint(os.getppid())',
    );
    // The parent inside is the process namespace's first process; signals reach nobody else.
    expect(stdout).toMatch(/1\n$/);
    expect(existsSync(`/proc/${process.pid}`)).toBe(true);
  });

  it('by other programs: there are none, no shell either', async () => {
    const { stdout } = await python('import os; print(sorted(os.listdir("/usr/bin")), os.system("id"))');
    expect(stdout).toMatch(/^\['prlimit', 'python3[.\d]*'\] 32512\n$/);
  });
});

const PROGRAM_THAT_LISTS_DESCRIPTORS = `
import('${new URL('./sandbox.ts', import.meta.url).pathname}').then(async ({ openSandbox }) => {
  const sandbox = openSandbox();
  const source = 'import os\\nfor d in os.listdir("/proc/self/fd"):\\n  try: print(d, os.readlink("/proc/self/fd/" + d))\\n  except OSError: pass';
  console.log((await sandbox.run({ language: 'python', source })).stdout);
  await sandbox.close();
});`;

const processes = () => readdirSync('/proc').filter(name => /^\d+$/.test(name));
const commandOf = (pid: string) => spawnSync('cat', [`/proc/${pid}/cmdline`], { encoding: 'utf8' }).stdout;
const isOurs = (pid: string) => /bwrap.*(setsid|os\.fork)/s.test(commandOf(pid));
