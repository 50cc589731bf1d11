import { useEffect, useRef, useState } from "preact/hooks";
import type { Saga } from "../../api/types";
import { t } from "../../i18n";
import { Icon, Text } from "../../ui";
import { layout } from "./layout";
import { stepLook, stepWord } from "./state";

/** A saga drawn: steps as boxes to click, arrows between stages, and the way back of a compensation below. */
export function Graph({ saga, chosen, onChoose }: { saga: Saga; chosen?: string; onChoose: (step: string) => void }) {
  const ref = useRef<HTMLDivElement>(null);
  const [room, setRoom] = useState(0);
  useEffect(() => {
    const el = ref.current!;
    const watch = new ResizeObserver(() => setRoom(el.clientWidth - 8));
    watch.observe(el);
    setRoom(el.clientWidth - 8);
    return () => watch.disconnect();
  }, []);
  const compensates = saga.status === "compensating" || saga.status === "stuck" || saga.status === "compensated";
  const d = layout(saga.steps, room || 900, compensates);
  return (
    <div class="graph" ref={ref}>
      {room > 0 && (
        <div class="graph-area" style={{ width: `${d.width}px`, height: `${d.height}px` }}>
          <svg width={d.width} height={d.height} viewBox={`0 0 ${d.width} ${d.height}`} aria-hidden="true">
            <defs>
              {(["next", "done", "back"] as const).map((kind) => (
                <marker
                  key={kind}
                  id={`arrow-${kind}`}
                  class={`saga-head ${kind}`}
                  viewBox="0 0 8 8"
                  refX="6.5"
                  refY="4"
                  markerWidth="7"
                  markerHeight="7"
                  orient="auto-start-reverse"
                >
                  <path d="M0 0.5L7 4L0 7.5z" />
                </marker>
              ))}
            </defs>
            {d.arrows.map((a, i) => (
              <path
                key={i}
                class={a.done ? "saga-edge done" : "saga-edge"}
                d={a.path}
                marker-end={a.head ? `url(#arrow-${a.done ? "done" : "next"})` : undefined}
              />
            ))}
            {d.back.map((b, i) => (
              <path key={i} class={`saga-edge back ${b.state}`} d={b.path} marker-end="url(#arrow-back)" />
            ))}
          </svg>
          <ol>
            {d.boxes.map((b) => {
              const [tone, icon] = stepLook(b.step);
              return (
                <li
                  key={b.step.name}
                  style={{ left: `${b.x}px`, top: `${b.y}px`, width: `${b.width}px`, height: `${b.height}px` }}
                >
                  <button
                    type="button"
                    class={`saga-node ${tone}${b.step.current ? " current" : ""}${b.width < 132 ? " small" : ""}`}
                    aria-pressed={chosen === b.step.name}
                    aria-current={b.step.current ? "step" : undefined}
                    aria-label={t("sagas.step.label", { n: b.stage + 1, name: b.step.name, state: stepWord(b.step) })}
                    onClick={() => onChoose(b.step.name)}
                  >
                    <span class="node-icon">
                      <Icon name={icon} size={14} />
                    </span>
                    <span class="node-text">
                      <span class="node-name cut" title={b.step.name}>
                        <Text value={b.step.name} />
                      </span>
                      <span class="node-state cut">
                        {stepWord(b.step)}
                        {b.step.attempts > 0 && ` · ${b.step.attempts}×`}
                      </span>
                    </span>
                  </button>
                </li>
              );
            })}
          </ol>
        </div>
      )}
    </div>
  );
}
