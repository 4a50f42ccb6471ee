// Steps through a list of any length.
import { count } from "../format";
import { Icon, type IconName } from "./icons";

interface PagingProps {
  offset: number;
  limit: number;
  of: number;
  go: (offset: number) => void;
}

export function Paging({ offset, limit, of, go }: PagingProps) {
  if (of <= limit && offset === 0) return null;
  const last = Math.max(0, Math.floor((of - 1) / limit) * limit);
  const step = (label: string, icon: IconName, to: number, possible: boolean) => (
    <button
      type="button"
      class="quiet"
      aria-label={label}
      title={label}
      disabled={!possible}
      onClick={() => go(to)}
    >
      <Icon name={icon} />
    </button>
  );
  return (
    <nav class="paging" aria-label="Pages of this list">
      {step("First page", "first", 0, offset > 0)}
      {step("Previous page", "back", Math.max(0, offset - limit), offset > 0)}
      <span>
        {count(Math.min(offset + 1, of))}–{count(Math.min(offset + limit, of))} of {count(of)}
      </span>
      {step("Next page", "forward", offset + limit, offset < last)}
      {step("Last page", "last", last, offset < last)}
    </nav>
  );
}
