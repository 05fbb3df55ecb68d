/** A promise that a test opens. */
export function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  const parts: { open?: () => void } = {};
  const opened = new Promise<void>(resolve => {
    parts.open = resolve;
  });
  return { opened, open: parts.open! };
}
