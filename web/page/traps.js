/** What is left to do after WebAssembly has failed: its module cannot be used again. */
export const trapped = (message) => `WebAssembly failed (${message}). Reload the page: it resumes from what it saved`;
