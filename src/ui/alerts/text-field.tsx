interface TextProps {
  readonly label: string
  readonly value: string
  readonly placeholder: string
  readonly onChange: (value: string) => void
}

/** A text field that reports a change when it loses the focus, so that an incomplete word has no effect. */
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
