// Sign-in with a token, with OIDC, or both.
import { useEffect, useState } from "preact/hooks";
import { type ApiError, beside, signedOut } from "../api/client";
import type { Methods } from "../api/types";
import { type Lang, lang, languages, setLang, t } from "../i18n";
import { Problem, Skeleton } from "../ui/feedback";
import { Field, Select } from "../ui/field";
import { Icon, Logo } from "../ui/icon";

export function SignIn({ onDone }: { onDone: () => void }) {
  const [methods, setMethods] = useState<Methods>();
  const [error, setError] = useState<ApiError>();
  const [token, setToken] = useState("");
  const [bad, setBad] = useState(false);
  const [busy, setBusy] = useState(false);
  const ask = () => {
    setError(undefined);
    beside<Methods>("GET", "auth/methods").then(setMethods, setError);
  };
  useEffect(() => {
    document.title = `${t("signin.title")} · Postrider`;
    ask();
  }, []);
  const back = location.pathname + location.search;
  return (
    <main class="signin" id="main">
      <div class="signin-box">
        <Logo size={44} />
        <h1>{t("signin.title")}</h1>
        <p class="lead">{t("signin.lead")}</p>
        {error && <Problem error={error} retry={ask} />}
        {!methods && !error && <Skeleton rows={2} />}
        {methods?.oidc && (
          <a
            class="button primary wide"
            href={`${new URL("auth/login", document.baseURI).href}?to=${encodeURIComponent(back)}`}
          >
            <Icon name="user" />
            {t("signin.oidc")}
          </a>
        )}
        {methods?.oidc && methods.token && <div class="or">{t("signin.or")}</div>}
        {methods?.token && (
          <form
            onSubmit={(e) => {
              e.preventDefault();
              setBusy(true);
              setBad(false);
              beside("POST", "auth/session", { token }).then(
                () => {
                  signedOut.value = false;
                  onDone();
                },
                (e: ApiError) => {
                  setBusy(false);
                  if (e.status === 401 || e.status === 403) setBad(true);
                  else setError(e);
                },
              );
            }}
          >
            <Field
              label={t("signin.token")}
              type="password"
              value={token}
              onInput={setToken}
              help={t("signin.token.help")}
              error={bad ? t("signin.bad") : undefined}
              autofocus
              required
            />
            <button
              type="submit"
              class={methods.oidc ? "button wide" : "button primary wide"}
              disabled={busy || token === ""}
            >
              {t("signin.submit")}
            </button>
          </form>
        )}
        {methods && !methods.oidc && !methods.token && <p class="notice">{t("signin.none")}</p>}
        <div class="signin-foot">
          <Select
            bare
            label={t("head.language")}
            value={lang.value}
            onChange={setLang}
            items={Object.entries(languages) as [Lang, string][]}
          />
        </div>
      </div>
    </main>
  );
}
