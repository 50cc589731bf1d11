GRANT EXECUTE ON FUNCTION @schema@.claim_keys(text[]) TO PUBLIC;
