// The application: sign-in, then rail, header and page.
import { useEffect, useState } from "preact/hooks";
import { type ApiError, get, me, signedOut } from "../api/client";
import type { Me } from "../api/types";
import { lang, t } from "../i18n";
import { database, path } from "../lib/router";
import { render } from "../pages/routes";
import { Empty, Problem, Skeleton, Toasts } from "../ui/feedback";
import { Link, Page } from "../ui/page";
import { Header } from "./header";
import { Help } from "./help";
import { Palette } from "./palette";
import { BottomBar, Rail } from "./rail";
import { SignIn } from "./signin";
import { helpOpen, paletteOpen } from "./state";

function NotFound() {
  return (
    <Page title={t("notfound.title")}>
      <Empty icon="search" title={t("notfound.title")}>
        <p>{t("notfound.help")}</p>
        <Link to="/" class="button primary">
          {t("notfound.back")}
        </Link>
      </Empty>
    </Page>
  );
}

export function App() {
  const [error, setError] = useState<ApiError>();
  const ask = () => {
    setError(undefined);
    get<Me>("me").then(
      (who) => {
        me.value = who;
      },
      (e: ApiError) => {
        if (e.status !== 401) setError(e);
      },
    );
  };
  // Another database may have other pages.
  useEffect(ask, [database.value]);
  const where = path.value;
  useEffect(() => {
    // The focused element may be gone with its page.
    if (document.activeElement === document.body) document.getElementById("main")?.focus({ preventScroll: true });
  }, [where]);
  useEffect(() => {
    document.documentElement.lang = lang.value === "zh" ? "zh-CN" : lang.value;
  }, [lang.value]);

  if (signedOut.value) {
    return (
      <SignIn
        onDone={() => {
          me.value = null;
          ask();
        }}
      />
    );
  }
  return (
    <>
      {/* biome-ignore lint/a11y/useValidAnchor: a plain #main would lead to <base> */}
      <a
        class="skip"
        href="#main"
        onClick={(e) => {
          e.preventDefault();
          document.getElementById("main")?.focus();
        }}
      >
        {t("nav.skip")}
      </a>
      <div class="shell">
        <Rail />
        <Header />
        <main id="main" tabIndex={-1}>
          {error ? (
            <Problem error={error} retry={ask} />
          ) : me.value ? (
            (render(path.value) ?? <NotFound />)
          ) : (
            <Skeleton rows={8} />
          )}
        </main>
        <BottomBar />
      </div>
      {paletteOpen.value && <Palette />}
      {helpOpen.value && <Help />}
      <Toasts />
    </>
  );
}
