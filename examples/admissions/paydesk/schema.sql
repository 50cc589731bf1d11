-- The payment provider's own tables. Running this again changes nothing.

CREATE SCHEMA IF NOT EXISTS paydesk;

CREATE TABLE IF NOT EXISTS paydesk.payments (
    id          text PRIMARY KEY,
    key         text NOT NULL UNIQUE, -- of the request that made it
    application text NOT NULL UNIQUE, -- the customer's own name for it
    cents       int  NOT NULL,
    status      text NOT NULL DEFAULT 'due' CHECK (status IN ('due', 'succeeded', 'declined', 'cancelled', 'refunded'))
);

-- Webhooks that are still to be sent.
CREATE TABLE IF NOT EXISTS paydesk.webhooks (
    id           text PRIMARY KEY,
    body         text NOT NULL,
    left_to_send int  NOT NULL DEFAULT 2, -- each is sent twice, on purpose
    failures     int  NOT NULL DEFAULT 0,
    due_at       timestamptz NOT NULL DEFAULT now()
);
