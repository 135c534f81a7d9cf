/** The part of the WebAssembly API that `kernel.ts` uses; TypeScript declares it only in its `dom` library. */
interface WasmMemory {
  readonly buffer: ArrayBuffer
}

interface WasmModule {
  readonly kind?: 'module'
}

declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => WasmModule
  readonly Instance: new (
    module: WasmModule,
    imports: Readonly<Record<string, object>>,
  ) => { readonly exports: object }
}
