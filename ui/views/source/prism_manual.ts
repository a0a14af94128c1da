// Prism colours the whole document by itself unless it is told not to before it loads.

(globalThis as { Prism?: unknown }).Prism = { manual: true };
