DROP FUNCTION @schema@.split(text, smallint, text), @schema@.merge(text, smallint), @schema@.canary(interval), @schema@.canary_of(text);
DROP TABLE @schema@.canaries;
