-- Reconcilers: jobs that find missing effects. Each has a row with its schedule, its owner and its
-- results.

-- claim_reconciler claims a job and returns the claim's token. If it cannot, the token is 0, wait
-- says for how long, and held_by names the owner. If there is no such job, the token is -1.
CREATE OR REPLACE FUNCTION @schema@.claim_reconciler(
  job text, by text, for_time interval, at_once boolean,
  OUT new_token bigint, OUT at timestamptz, OUT wait interval, OUT held_by text)
  LANGUAGE plpgsql
AS $$
DECLARE
  p @schema@.reconcilers;
BEGIN
  -- Look without a lock first, so that a caller who cannot claim does not wait for a run that is
  -- about to commit.
  FOR round IN 1 .. 2 LOOP
    IF round = 1 THEN
      SELECT * INTO p FROM @schema@.reconcilers t WHERE t.name = job;
    ELSE
      SELECT * INTO p FROM @schema@.reconcilers t WHERE t.name = job FOR NO KEY UPDATE;
    END IF;
    at := clock_timestamp();
    new_token := CASE WHEN p.name IS NULL THEN -1 ELSE 0 END;
    held_by := CASE WHEN p.until > at THEN p.holder END;
    wait := CASE WHEN p.until > at THEN p.until - at WHEN p.next_at > at AND NOT at_once THEN p.next_at - at END;
    IF new_token < 0 OR wait IS NOT NULL THEN
      RETURN;
    END IF;
  END LOOP;
  new_token := p.token + 1;
  UPDATE @schema@.reconcilers t
    SET token = new_token, holder = by, lease = for_time, until = at + for_time, last_started = at, last_finished = NULL, last_holder = by,
        last_found = 0, last_fixed = 0, last_error = NULL
    WHERE t.name = job;
END
$$;

-- count_reconciler adds to the results of a claim, and renews its lease. It returns false if
-- another claim has replaced it.
CREATE OR REPLACE FUNCTION @schema@.count_reconciler(job text, of_token bigint, more_found bigint, more_fixed bigint) RETURNS boolean
  LANGUAGE plpgsql
AS $$
BEGIN
  UPDATE @schema@.reconcilers t
    SET found = t.found + more_found, fixed = t.fixed + more_fixed, last_found = t.last_found + more_found,
        last_fixed = t.last_fixed + more_fixed, until = clock_timestamp() + t.lease
    WHERE t.name = job AND t.token = of_token AND t.holder IS NOT NULL;
  RETURN FOUND;
END
$$;

-- finish_reconciler ends a claim. If next_time is null, the next time stays.
CREATE OR REPLACE FUNCTION @schema@.finish_reconciler(job text, of_token bigint, next_time timestamptz, keep interval, failure text) RETURNS boolean
  LANGUAGE plpgsql
AS $$
BEGIN
  UPDATE @schema@.reconcilers t
    SET holder = NULL, until = '-infinity', next_at = coalesce(next_time, t.next_at), runs = t.runs + 1,
        failed = t.failed + (failure IS NOT NULL)::integer, last_finished = clock_timestamp(), last_error = failure
    WHERE t.name = job AND t.token = of_token AND t.holder IS NOT NULL;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  DELETE FROM @schema@.reconciler_again a WHERE a.job = finish_reconciler.job AND a.at < clock_timestamp() - keep;
  RETURN true;
END
$$;

-- again_reconciler returns, for each key in order, how many times its fact has now been sent again,
-- or 0 if it may not be sent now. The first time that a key is missed counts as number first.
CREATE OR REPLACE FUNCTION @schema@.again_reconciler(job text, keys json, most integer, pause interval, first integer) RETURNS text
  LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
  numbers text;
BEGIN
  WITH asked AS MATERIALIZED (
    SELECT k.key, k.place FROM json_array_elements_text(keys) WITH ORDINALITY AS k(key, place)),
  told AS (
    INSERT INTO @schema@.reconciler_again AS a (job, key, n, at)
      SELECT again_reconciler.job, k.key, again_reconciler.first, clock_timestamp() FROM (SELECT DISTINCT key FROM asked ORDER BY key) k
      ON CONFLICT (job, key) DO UPDATE SET n = a.n + 1, at = excluded.at
        WHERE a.n < again_reconciler.most AND a.at <= clock_timestamp() - again_reconciler.pause
      RETURNING a.key, a.n)
  SELECT string_agg(coalesce(t.n, 0)::text, ' ' ORDER BY k.place) INTO numbers FROM asked k LEFT JOIN told t ON t.key = k.key;
  RETURN numbers;
END
$$;

-- resend_for sends messages of the log, by their numbers, to a feed once more, and writes an audit
-- record.
CREATE OR REPLACE FUNCTION @schema@.resend_for(who text, why text, feed_name text, numbers json) RETURNS bigint
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  done bigint;
BEGIN
  done := @schema@.resend(feed_name, ARRAY(SELECT s::bigint FROM json_array_elements_text(numbers) s), NULL);
  PERFORM @schema@.record(who, why, 'resend', feed_name, done, jsonb_build_object('seqs', numbers));
  RETURN done;
END
$$;

-- record_reconciler writes an audit record of a reconciler that an operator has run by hand.
CREATE OR REPLACE FUNCTION @schema@.record_reconciler(who text, why text, job text, found bigint, fixed bigint) RETURNS void
  LANGUAGE sql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT @schema@.record(who, why, 'reconciler', NULL, fixed, jsonb_build_object('job', job, 'found', found))
$$;
REVOKE ALL ON FUNCTION
  @schema@.resend_for(text, text, text, json), @schema@.record_reconciler(text, text, text, bigint, bigint)
  FROM PUBLIC;
