import { templatePieces } from './message.js'

/** The text of a template, its variables as stars in another colour. */
export const TemplateText = ({ text }: { readonly text: string }) => (
  <span class="template-text">
    {templatePieces(text).map(({ text: piece, isVariable }, i) =>
      isVariable ? <i key={i}>{piece}</i> : piece,
    )}
  </span>
)
