// Fields of forms.
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

/** A text field with its name above it; a line of help below. */
export function Field(p: {
  label: string;
  value: string;
  onInput: (v: string) => void;
  help?: string;
  placeholder?: string;
  type?: "text" | "password" | "number" | "search";
  rows?: number;
  mono?: boolean;
  required?: boolean;
  list?: string[];
  autofocus?: boolean;
  error?: string;
  search?: boolean; // "/" leads here
}) {
  const id = useId();
  const shared = {
    id,
    value: p.value,
    placeholder: p.placeholder,
    required: p.required,
    class: p.mono ? "mono" : undefined,
    autofocus: p.autofocus,
    spellcheck: false,
    autocomplete: "off",
    "data-search": p.search ? "" : undefined,
    "aria-invalid": p.error ? true : undefined,
    "aria-describedby": p.help || p.error ? `${id}-help` : undefined,
  };
  return (
    <div class="field">
      <label for={id}>{p.label}</label>
      {p.rows ? (
        <textarea {...shared} rows={p.rows} onInput={(e) => p.onInput(e.currentTarget.value)} />
      ) : (
        <input
          {...shared}
          type={(p.type ?? "text") as "text"}
          list={p.list ? `${id}-list` : undefined}
          onInput={(e) => p.onInput(e.currentTarget.value)}
        />
      )}
      {p.list && (
        <datalist id={`${id}-list`}>
          {p.list.map((v) => (
            <option value={v} key={v} />
          ))}
        </datalist>
      )}
      {(p.error || p.help) && (
        <p class={p.error ? "help bad-text" : "help"} id={`${id}-help`}>
          {p.error ?? p.help}
        </p>
      )}
    </div>
  );
}

/** A choice from a list. */
export function Select<T extends string>(p: {
  label: string;
  value: T;
  onChange: (v: T) => void;
  items: [value: T, label: string][];
  bare?: boolean; // the label is for screen readers only
}) {
  const id = useId();
  return (
    <div class={p.bare ? "field bare" : "field"}>
      <label for={id} class={p.bare ? "sr" : undefined}>
        {p.label}
      </label>
      <select id={id} value={p.value} onChange={(e) => p.onChange(e.currentTarget.value as T)}>
        {p.items.map(([v, label]) => (
          <option value={v} key={v} selected={v === p.value}>
            {label}
          </option>
        ))}
      </select>
    </div>
  );
}

/** A box to tick. */
export function Check(p: { checked: boolean; onChange: (v: boolean) => void; children: ComponentChildren }) {
  return (
    <label class="check">
      <input type="checkbox" checked={p.checked} onChange={(e) => p.onChange(e.currentTarget.checked)} />
      <span>{p.children}</span>
    </label>
  );
}
