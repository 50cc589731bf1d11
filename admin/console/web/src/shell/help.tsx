// What the keys do.
import { t } from "../i18n";
import { jumps } from "../lib/keys";
import type { PageName } from "../pages/routes";
import { Dialog } from "../ui/dialog";
import { pages } from "./rail";
import { helpOpen } from "./state";

function Keys({ keys, text }: { keys: string[]; text: string }) {
  return (
    <div class="help-row">
      <dt>{text}</dt>
      <dd>
        {keys.map((k) => (
          <kbd key={k}>{k}</kbd>
        ))}
      </dd>
    </div>
  );
}

export function Help() {
  const have = pages();
  return (
    <Dialog
      title={t("help.title")}
      onClose={() => {
        helpOpen.value = false;
      }}
    >
      <div class="help">
        <dl>
          <Keys keys={["Ctrl", "K"]} text={t("help.palette")} />
          <Keys keys={["/"]} text={t("help.search")} />
          <Keys keys={["j", "k"]} text={t("help.move")} />
          <Keys keys={["Enter"]} text={t("help.open")} />
          <Keys keys={["x"]} text={t("help.select")} />
          <Keys keys={["."]} text={t("help.pause")} />
          <Keys keys={["?"]} text={t("help.help")} />
          <Keys keys={["Esc"]} text={t("help.close")} />
        </dl>
        <dl>
          {Object.entries(jumps).map(([key, to]) => {
            const page = (to === "/" ? "overview" : to.slice(1)) as PageName;
            return have.includes(page) && <Keys key={key} keys={["g", key]} text={t(`nav.${page}`)} />;
          })}
        </dl>
      </div>
    </Dialog>
  );
}
