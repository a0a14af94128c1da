// What the model uses of the platform beyond the language: there in browsers, in Node and in VS Code's web host.
// The model is compiled without the DOM, so that anything else is an error.

declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean });
  decode(data: Uint8Array): string;
}

declare class TextEncoder {
  encode(text: string): Uint8Array;
}

declare function atob(text: string): string;

interface ByteReader {
  read(): Promise<{ done: boolean; value?: Uint8Array }>;
}

declare class DecompressionStream {
  constructor(format: "gzip");
  readonly readable: { getReader(): ByteReader };
  readonly writable: {
    getWriter(): {
      write(data: Uint8Array): Promise<void>;
      close(): Promise<void>;
    };
  };
}
