/** The part of the WebAssembly API that is used here; TypeScript has it only together with the browser's. */
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
