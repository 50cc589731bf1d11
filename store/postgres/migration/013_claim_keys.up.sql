-- Whoever claims a deduplication key lets the message that has it be taken for a repetition: only for those who may write messages.

REVOKE ALL ON FUNCTION @schema@.claim_keys(text[]) FROM PUBLIC;
DO $$
DECLARE
  writer text;
BEGIN
  FOR writer IN
    SELECT DISTINCT pg_get_userbyid(a.grantee)
    FROM (SELECT relacl AS acl FROM pg_class WHERE oid = '@schema@.messages'::regclass
          UNION ALL SELECT attacl FROM pg_attribute WHERE attrelid = '@schema@.messages'::regclass) g, aclexplode(g.acl) a
    WHERE a.privilege_type = 'INSERT' AND a.grantee <> 0
  LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION @schema@.claim_keys(text[]) TO %I', writer);
  END LOOP;
  IF has_table_privilege('public', '@schema@.messages', 'INSERT') THEN
    GRANT EXECUTE ON FUNCTION @schema@.claim_keys(text[]) TO PUBLIC;
  END IF;
END
$$;
