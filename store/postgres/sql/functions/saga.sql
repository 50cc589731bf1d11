-- Sagas: one row each, and one for each of their steps and signals.
--
-- Lock order: a runner locks the row of a step for as long as it runs the step, and locks the
-- saga's row only when there is something to write. A transaction that holds a saga's row never
-- waits for the row of a step (it uses SKIP LOCKED). So there is no deadlock.

-- saga_doc returns a saga with its steps and signals. Data and payloads pass through unchanged, as
-- json: PostgreSQL cannot decode JSON that contains \u0000.
CREATE OR REPLACE FUNCTION @schema@.saga_doc(of_name text, of_id text) RETURNS text
  LANGUAGE sql STABLE
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET jit = off
AS $$
  SELECT json_build_object(
    'name', g.name, 'id', g.id, 'status', g.status, 'version', g.version, 'cause', g.cause, 'data', g.data, 'started', g.started,
    'updated', g.updated, 'deadline', g.deadline, 'finished', g.finished, 'now', clock_timestamp(),
    'steps', (
      SELECT coalesce(json_agg(json_build_object(
        'name', s.step, 'place', s.place, 'stage', s.stage, 'state', s.state, 'attempts', s.attempts, 'error', s.error,
        'failing', s.failing, 'begun', s.begun, 'order', s.completed, 'skip', s.skip, 'due', s.due, 'until', s.until, 'reached', s.reached, 'ended', s.ended,
        'undone', s.undone) ORDER BY s.place), '[]')
      FROM @schema@.saga_steps s WHERE s.saga = g.name AND s.id = g.id),
    'signals', (
      SELECT coalesce(json_agg(json_build_object(
        'name', i.name, 'payload', i.payload, 'at', i.at, 'late', i.late, 'repeats', i.repeats) ORDER BY i.at, i.name), '[]')
      FROM @schema@.saga_signals i WHERE i.saga = g.name AND i.id = g.id))::text
  FROM @schema@.sagas g WHERE g.name = of_name AND g.id = of_id
$$;

-- create_saga creates a saga. Times in doc are those of the caller's clock; its field now says what
-- that clock shows.
CREATE OR REPLACE FUNCTION @schema@.create_saga(doc json, new_data json) RETURNS boolean
  LANGUAGE plpgsql
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  at    timestamptz := clock_timestamp();
  shift interval := at - (doc ->> 'now')::timestamptz;
BEGIN
  INSERT INTO @schema@.sagas (name, id, status, version, data, started, updated, deadline)
    VALUES (doc ->> 'name', doc ->> 'id', doc ->> 'status', 1, new_data, at, at, (doc ->> 'deadline')::timestamptz + shift)
    ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO @schema@.saga_steps (saga, id, step, place, stage, state, due, until, reached)
    SELECT doc ->> 'name', doc ->> 'id', s.name, s.place, s.stage, s.state, s.due + shift, s.until + shift, s.reached + shift
    FROM json_to_recordset(doc -> 'steps') AS
      s(name text, place integer, stage integer, state text, due timestamptz, until timestamptz, reached timestamptz);
  RETURN true;
END
$$;

-- saga_due returns the seconds until the next step is due, or null if none will be. known has the
-- names of steps by saga.
CREATE OR REPLACE FUNCTION @schema@.saga_due(known json) RETURNS double precision
  LANGUAGE plpgsql
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET enable_sort = off
  SET jit = off
AS $$
DECLARE
  k     record;
  first timestamptz;
  found timestamptz;
BEGIN
  FOR k IN SELECT e.key AS saga, ARRAY(SELECT json_array_elements_text(e.value)) AS steps FROM json_each(known) e LOOP
    SELECT s.due INTO found FROM @schema@.saga_steps s
      WHERE s.saga = k.saga AND s.due IS NOT NULL AND s.step = ANY (k.steps) ORDER BY s.due LIMIT 1;
    first := least(first, found);
  END LOOP;
  RETURN extract(epoch FROM first - clock_timestamp());
END
$$;

-- take_saga_step locks a step that is due and not locked. It tries the types of sagas in random
-- order, so that a busy one does not starve the others.
CREATE OR REPLACE FUNCTION @schema@.take_saga_step(known json, OUT step text, OUT doc text)
  LANGUAGE plpgsql
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET enable_sort = off
  SET jit = off
AS $$
DECLARE
  k   record;
  s   record;
  at  timestamptz := clock_timestamp();
BEGIN
  FOR k IN SELECT e.key AS saga, ARRAY(SELECT json_array_elements_text(e.value)) AS steps FROM json_each(known) e ORDER BY random() LOOP
    SELECT t.saga, t.id, t.step INTO s FROM @schema@.saga_steps t
      WHERE t.saga = k.saga AND t.due <= at AND t.step = ANY (k.steps) ORDER BY t.due LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF FOUND THEN
      step := s.step;
      doc := @schema@.saga_doc(s.saga, s.id);
      RETURN;
    END IF;
  END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION @schema@.lock_saga(of_name text, of_id text) RETURNS text
  LANGUAGE plpgsql
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM FROM @schema@.sagas g WHERE g.name = of_name AND g.id = of_id FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  RETURN @schema@.saga_doc(of_name, of_id); -- uses a new snapshot, which includes what others wrote before they released the lock
END
$$;

-- wake_saga_steps makes steps due, except those that are running: their runners look at the saga
-- when they finish.
CREATE OR REPLACE FUNCTION @schema@.wake_saga_steps(of_name text, of_id text, steps text[]) RETURNS void
  LANGUAGE sql
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
AS $$
  WITH free AS MATERIALIZED (
    SELECT s.step FROM @schema@.saga_steps s WHERE s.saga = of_name AND s.id = of_id AND s.step = ANY (steps) FOR UPDATE SKIP LOCKED)
  UPDATE @schema@.saga_steps s SET due = clock_timestamp() FROM free
    WHERE s.saga = of_name AND s.id = of_id AND s.step = free.step
$$;

-- save_saga writes what has changed: doc has only the changed steps, the names of the steps to
-- wake, and a signal without its payload.
CREATE OR REPLACE FUNCTION @schema@.save_saga(doc json, new_data json, payload json) RETURNS boolean
  LANGUAGE plpgsql
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET enable_hashjoin = off
  SET enable_mergejoin = off
  SET jit = off
AS $$
BEGIN
  UPDATE @schema@.sagas g SET status = doc ->> 'status', cause = doc ->> 'cause', finished = (doc ->> 'finished')::timestamptz,
      version = g.version + 1, updated = clock_timestamp(), data = coalesce(new_data, g.data)
    WHERE g.name = doc ->> 'name' AND g.id = doc ->> 'id' AND g.version = (doc ->> 'version')::bigint;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  IF json_array_length(doc -> 'steps') > 0 THEN
    UPDATE @schema@.saga_steps s SET state = n.state, attempts = n.attempts, error = n.error, failing = n.failing, begun = n.begun,
        completed = n."order", skip = n.skip, due = n.due, until = n.until, reached = n.reached, ended = n.ended, undone = n.undone
      FROM json_to_recordset(doc -> 'steps') AS
        n(name text, state text, attempts integer, error text, failing timestamptz, begun timestamptz, "order" integer, skip boolean,
          due timestamptz, until timestamptz, reached timestamptz, ended timestamptz, undone timestamptz)
      WHERE s.saga = doc ->> 'name' AND s.id = doc ->> 'id' AND s.step = n.name;
  END IF;
  IF json_array_length(doc -> 'wake') > 0 THEN
    PERFORM @schema@.wake_saga_steps(doc ->> 'name', doc ->> 'id', ARRAY(SELECT json_array_elements_text(doc -> 'wake')));
  END IF;
  IF payload IS NOT NULL THEN
    INSERT INTO @schema@.saga_signals AS i (saga, id, name, payload, at, late, repeats)
      SELECT doc ->> 'name', doc ->> 'id', n.name, payload, n.at, n.late, n.repeats
      FROM json_to_record(doc -> 'signal') AS n(name text, at timestamptz, late boolean, repeats integer)
      ON CONFLICT (saga, id, name) DO UPDATE SET repeats = EXCLUDED.repeats;
  END IF;
  RETURN true;
END
$$;

-- act_on_saga records what an operator wants, and makes that due; runners do the work. It returns
-- null if there is no such saga, and false if the act does not apply to anything.
CREATE OR REPLACE FUNCTION @schema@.act_on_saga(who text, why text, what text, of_name text, of_id text, of_step text) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
AS $$
DECLARE
  was    text;
  now_is text;
  n      bigint;
BEGIN
  SELECT g.status INTO was FROM @schema@.sagas g WHERE g.name = of_name AND g.id = of_id FOR NO KEY UPDATE;
  IF was IS NULL THEN
    RETURN NULL;
  END IF;
  now_is := was;
  IF what = 'compensate' AND was IN ('running', 'waiting') THEN
    now_is := 'compensating';
    PERFORM @schema@.wake_saga_steps(of_name, of_id, ARRAY(SELECT s.step FROM @schema@.saga_steps s
      WHERE s.saga = of_name AND s.id = of_id AND s.state IN ('ready', 'waiting')));
  ELSIF what IN ('retry', 'skip') AND was IN ('running', 'waiting', 'compensating', 'stuck') THEN
    WITH free AS MATERIALIZED (
      SELECT s.step FROM @schema@.saga_steps s
      WHERE s.saga = of_name AND s.id = of_id AND (of_step = '' OR s.step = of_step)
        AND (s.state = 'stuck' OR s.failing IS NOT NULL AND s.state IN ('ready', 'undoing') OR what = 'skip' AND s.state = 'waiting')
      FOR UPDATE SKIP LOCKED)
    UPDATE @schema@.saga_steps s SET due = clock_timestamp(), skip = s.skip OR what = 'skip',
        attempts = CASE what WHEN 'retry' THEN 0 ELSE s.attempts END,
        failing = CASE what WHEN 'retry' THEN NULL ELSE s.failing END,
        state = CASE WHEN what = 'retry' AND s.state = 'stuck' THEN 'undoing' ELSE s.state END
      FROM free WHERE s.saga = of_name AND s.id = of_id AND s.step = free.step;
    GET DIAGNOSTICS n = ROW_COUNT;
    IF n = 0 THEN
      RETURN false;
    END IF;
    IF what = 'retry' AND was = 'stuck' THEN
      now_is := 'compensating';
    END IF;
  ELSE
    RETURN false;
  END IF;
  UPDATE @schema@.sagas g SET status = now_is, version = g.version + 1, updated = clock_timestamp(),
      cause = CASE what WHEN 'compensate' THEN 'given up by an operator' ELSE g.cause END
    WHERE g.name = of_name AND g.id = of_id;
  PERFORM @schema@.record(who, why, 'saga ' || what, NULL, 1,
                          jsonb_strip_nulls(jsonb_build_object('saga', of_name, 'id', of_id, 'step', nullif(of_step, ''))),
                          jsonb_build_object('status', was), jsonb_build_object('status', now_is));
  RETURN true;
END
$$;
REVOKE ALL ON FUNCTION @schema@.act_on_saga(text, text, text, text, text, text) FROM PUBLIC;
