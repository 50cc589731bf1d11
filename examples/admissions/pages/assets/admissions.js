// Two small things: sends the form so that repetitions count once, and follows an application.
"use strict";

const form = document.getElementById("apply");
if (form) form.addEventListener("submit", (event) => { event.preventDefault(); apply(form); });

const application = document.getElementById("application");
if (application) follow(application);

async function apply(form) {
  const button = form.querySelector("button");
  const message = document.getElementById("message");
  form.querySelectorAll(".error").forEach((place) => { place.textContent = ""; });
  form.querySelectorAll("[aria-invalid]").forEach((field) => { field.removeAttribute("aria-invalid"); });
  message.textContent = "";
  button.disabled = true;
  // One key for all attempts: the server does it once, and gives each attempt the same answer.
  const key = newKey();
  const body = new FormData(form);
  for (let pause = 500; ; pause = Math.min(2 * pause, 8000)) {
    try {
      const answer = await fetch("/applications", {
        method: "POST", body, headers: { "Idempotency-Key": `"${key}"` },
      });
      if (answer.status === 202) {
        location.assign((await answer.json()).statusUrl);
        return;
      }
      if (answer.status < 500 && answer.status !== 409) {
        showProblem(await answer.json());
        button.disabled = false;
        return;
      }
    } catch { /* no connection: try again */ }
    message.textContent = "The university cannot be reached. Trying again …";
    await new Promise((wake) => setTimeout(wake, pause));
  }
}

// newKey is a random text. (crypto.randomUUID is only there on pages that came encrypted or from this machine.)
function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
}

function showProblem(problem) {
  const errors = problem.errors || [];
  for (const e of errors) {
    const field = document.getElementById(e.field);
    if (!field) continue;
    field.setAttribute("aria-invalid", "true");
    const place = document.getElementById(e.field + "-error");
    place.textContent = `${place.textContent} ${e.message}`.trim();
  }
  document.querySelector("[aria-invalid]")?.focus();
  document.getElementById("message").textContent = problem.detail || problem.title;
}

async function follow(page) {
  const final = (status) => status === "completed" || status === "declined";
  while (!final(page.dataset.status)) {
    await new Promise((wake) => setTimeout(wake, 500));
    try {
      const answer = await fetch(page.dataset.statusUrl, { headers: { Accept: "application/json" } });
      if (answer.ok) showStatus(page, await answer.json());
    } catch { /* no connection: the next look may have one */ }
  }
}

function showStatus(page, a) {
  page.dataset.status = a.status;
  const bar = document.getElementById("progress");
  bar.setAttribute("aria-valuenow", a.progress);
  bar.querySelector("progress").value = a.progress;
  document.getElementById("percent").textContent = `${a.progress} %`;
  for (const step of a.steps) {
    const item = page.querySelector(`[data-step="${step.name}"]`);
    item.classList.toggle("done", step.done);
    item.querySelector(".sr").textContent = step.done ? ", done" : "";
  }
  document.getElementById("pay").hidden = a.status !== "awaiting_payment";
  const outcome = document.getElementById("outcome");
  if (a.status === "completed") outcome.textContent = "All done. A confirmation is in your mailbox.";
  if (a.status === "declined") outcome.textContent = `Your application was declined. ${a.declinedFor}`;
}
