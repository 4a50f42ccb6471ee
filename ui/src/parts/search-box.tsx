// A box to type a filter into. What is typed takes effect after a short rest.
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "./icons";

const REST_MS = 250;

interface SearchBoxProps {
  label: string;
  placeholder: string;
  value: string;
  onValue: (value: string) => void;
  onEnter?: (backwards: boolean) => void;
}

export function SearchBox({ label, placeholder, value, onValue, onEnter }: SearchBoxProps) {
  const [typed, setTyped] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => setTyped(value), [value]);
  useEffect(() => () => clearTimeout(timer.current), []);

  const settle = (text: string, wait: number) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => onValue(text), wait);
  };
  return (
    <label class="search">
      <Icon name="search" />
      <input
        type="search"
        aria-label={label}
        placeholder={placeholder}
        value={typed}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => {
          setTyped(event.currentTarget.value);
          settle(event.currentTarget.value, REST_MS);
        }}
        onKeyDown={(event) => {
          if (event.key === "Escape") {
            setTyped("");
            settle("", 0);
            event.currentTarget.blur();
          } else if (event.key === "Enter") {
            if (typed !== value) settle(typed, 0);
            else onEnter?.(event.shiftKey);
          }
        }}
      />
    </label>
  );
}
