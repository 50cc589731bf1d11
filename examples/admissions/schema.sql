-- The tables of the admissions service. Running this again changes nothing.

CREATE SCHEMA IF NOT EXISTS admissions;

CREATE TABLE IF NOT EXISTS admissions.programmes (
    id    text PRIMARY KEY,
    title text NOT NULL,
    seats int  NOT NULL,
    taken int  NOT NULL DEFAULT 0 CHECK (taken BETWEEN 0 AND seats)
);

-- What an application costs. A programme without a row here cannot be paid for.
CREATE TABLE IF NOT EXISTS admissions.fees (
    programme text PRIMARY KEY REFERENCES admissions.programmes,
    cents     int  NOT NULL CHECK (cents > 0)
);

-- How far an application has come is told by the times alone; status.go makes a status of them.
CREATE TABLE IF NOT EXISTS admissions.applications (
    id           uuid PRIMARY KEY DEFAULT gen_random_uuid(), -- random: everyone who knows the address may see the page
    name         text NOT NULL,
    email        text NOT NULL,
    programme    text NOT NULL REFERENCES admissions.programmes,
    submitted_at timestamptz NOT NULL DEFAULT now(),
    payment_id   text,
    payment_at   timestamptz,
    paid_at      timestamptz,
    mailed_at    timestamptz,
    declined_at  timestamptz,
    declined_for text
);

CREATE TABLE IF NOT EXISTS admissions.documents (
    id           uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    application  uuid NOT NULL REFERENCES admissions.applications,
    name         text NOT NULL,
    content_type text NOT NULL,
    sha256       bytea NOT NULL,
    content      bytea NOT NULL,
    verified_at  timestamptz
);
CREATE INDEX IF NOT EXISTS documents_application ON admissions.documents (application);

INSERT INTO admissions.programmes (id, title, seats) VALUES
    ('computing', 'Computing', 100000),
    ('law', 'Law', 100000),
    ('medicine', 'Medicine', 2),
    ('alchemy', 'Alchemy', 100000)
ON CONFLICT DO NOTHING;

-- Nobody has set a fee for alchemy. That is the failure to be mended by hand; see README.md.
INSERT INTO admissions.fees (programme, cents) VALUES ('computing', 4000), ('law', 4000), ('medicine', 6000)
ON CONFLICT DO NOTHING;
