// Navigation: a rail at the left, a bar at the bottom on narrow screens.
import { useState } from "preact/hooks";
import { me } from "../api/client";
import { overview } from "../api/live";
import { t } from "../i18n";
import { short } from "../lib/format";
import { path } from "../lib/router";
import { groups, type PageName, pathOf } from "../pages/routes";
import { Dialog } from "../ui/dialog";
import { Icon, Logo } from "../ui/icon";
import { Link } from "../ui/page";

/** The pages that the server supports. */
export function pages(): PageName[] {
  const all = groups.flatMap(([, names]) => names);
  const have = me.value?.pages;
  return have ? all.filter((p) => p === "overview" || have.includes(p)) : all;
}

/** How many need attention, for a page's badge. */
function count(page: PageName): number {
  const o = overview.value;
  if (!o) return 0;
  if (page === "dead") return o.totals.dead.n;
  if (page === "keys") return o.totals.blocked.n;
  return 0;
}

function current(page: PageName): boolean {
  const p = path.value;
  return page === "overview" ? p === "/" || p === "/overview" : p === `/${page}` || p.startsWith(`/${page}/`);
}

function Item({ page, onClick }: { page: PageName; onClick?: () => void }) {
  const n = count(page);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Enter on the link is a click
    <li class={current(page) ? "here" : undefined} onClick={onClick}>
      <Link to={pathOf(page)} title={t(`nav.${page}`)}>
        <Icon name={page} size={17} />
        <span class="nav-name">{t(`nav.${page}`)}</span>
        {n > 0 && <span class="count num">{short(n)}</span>}
      </Link>
    </li>
  );
}

export function Rail() {
  const have = pages();
  return (
    <nav class="rail" aria-label={t("nav.label")}>
      <Link to="/" class="brand" label="Postrider">
        <Logo />
        <span class="nav-name">Postrider</span>
      </Link>
      {groups.map(([group, names]) => {
        const mine = names.filter((n) => have.includes(n));
        if (mine.length === 0) return null;
        return (
          <div class="nav-group" key={group}>
            {group !== "now" && <h2>{t(`nav.${group}`)}</h2>}
            <ul>
              {mine.map((p) => (
                <Item page={p} key={p} />
              ))}
            </ul>
          </div>
        );
      })}
    </nav>
  );
}

/** The bar of narrow screens: the first four, and the rest behind "more". */
export function BottomBar() {
  const [open, setOpen] = useState(false);
  const have = pages();
  const first = have.slice(0, 4);
  const rest = have.slice(4);
  return (
    <nav class="bottom" aria-label={t("nav.label")}>
      <ul>
        {first.map((p) => (
          <Item page={p} key={p} />
        ))}
        {rest.length > 0 && (
          <li class={rest.some(current) ? "here" : undefined}>
            <button type="button" onClick={() => setOpen(true)}>
              <Icon name="menu" size={17} />
              <span class="nav-name">{t("nav.more")}</span>
            </button>
          </li>
        )}
      </ul>
      {open && (
        <Dialog title={t("nav.more")} onClose={() => setOpen(false)} size="small">
          <ul class="sheet">
            {rest.map((p) => (
              <Item page={p} key={p} onClick={() => setOpen(false)} />
            ))}
          </ul>
        </Dialog>
      )}
    </nav>
  );
}
