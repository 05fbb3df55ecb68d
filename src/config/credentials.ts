/** Text in which the user and password of every address (`https://user:password@host`) are replaced by `***`. */
export function withoutCredentials(text: string): string {
  return text.replace(/(\/\/)[^/@\s"]+@/g, '$1***@');
}
