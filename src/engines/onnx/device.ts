/** Where the engine computes: an execution provider of the runtime. */
export const DEVICES = ['cpu', 'webgpu', 'cuda'] as const;
export type Device = (typeof DEVICES)[number];

/**
 * Why a device cannot be used here, and what to do: the sentence for what the runtime said when a session on it was
 * to be made. Undefined where the runtime's words are about something else than the device.
 */
export function deviceRefusal(device: Device, said: string): string | undefined {
  if (device === 'cpu') return undefined;
  const missing = MISSING[device].find(({ sign }) => sign.test(said));
  return missing && `engine.device ${device}: ${missing.what}; ${missing.remedy}, or take engine.device cpu`;
}

interface Missing {
  /** Occurs in what the runtime says. */
  readonly sign: RegExp;
  readonly what: string;
  readonly remedy: string;
}

const absent = (device: Device): Missing => ({
  sign: /backend not found/,
  what: `this build of onnxruntime-node for ${process.platform}/${process.arch} has no ${device} provider`,
  remedy: 'run on a platform whose build has it (`npx tokenloop doctor` lists the providers)',
});

const MISSING: Readonly<Record<Exclude<Device, 'cpu'>, readonly Missing[]>> = {
  webgpu: [
    absent('webgpu'),
    {
      sign: /WebGPU adapter/i,
      what: 'no GPU was found that WebGPU can use',
      remedy:
        process.platform === 'linux'
          ? 'install the Vulkan loader (libvulkan1) and the driver of the GPU, and see that `vulkaninfo --summary` lists it'
          : 'install the driver of the GPU',
    },
  ],
  cuda: [
    absent('cuda'),
    {
      sign: /Failed to load (shared )?library/i,
      what: "onnxruntime-node is here without its CUDA library, or CUDA 12 and cuDNN 9, which that needs, are not on the loader's path",
      remedy:
        'fetch the library (Linux x64) with `ONNXRUNTIME_NODE_INSTALL=cuda12 node node_modules/onnxruntime-node/script/install.js` and install CUDA 12 and cuDNN 9',
    },
    {
      sign: /CUDA (failure|error)|no CUDA-capable device|driver version is insufficient/i,
      what: 'no GPU was found that CUDA can use',
      remedy: 'see that `nvidia-smi` lists one and that its driver supports CUDA 12',
    },
  ],
};
