import { Icon } from '../lib/icon.js'

interface ImportButtonProps {
  readonly onFile: (file: File) => void
}

/** A button that chooses a JSON file; the same file can be chosen again. */
export const ImportButton = ({ onFile }: ImportButtonProps) => (
  <label class="button">
    <Icon name="upload" size={14} /> Import
    <input
      type="file"
      class="vh"
      accept="application/json,.json"
      onChange={({ currentTarget }) => {
        const [file] = currentTarget.files ?? []
        if (file !== undefined) onFile(file)
        currentTarget.value = ''
      }}
    />
  </label>
)
