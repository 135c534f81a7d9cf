interface TextProps {
  readonly label: string
  readonly value: string
  readonly placeholder: string
  readonly onChange: (value: string) => void
}

/** Takes over what is typed when the field is left, so that half a word changes nothing. */
export const Text = ({ label, value, placeholder, onChange }: TextProps) => (
  <label class="field">
    {label}
    <input
      value={value}
      placeholder={placeholder}
      spellcheck={false}
      onChange={({ currentTarget }) => onChange(currentTarget.value.trim())}
    />
  </label>
)
