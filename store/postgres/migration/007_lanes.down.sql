DROP FUNCTION @schema@.split(text, smallint, text), @schema@.merge(text, smallint), @schema@.canary(interval), @schema@.canary_of(text),
  @schema@.change_shards(text, text, text, integer), @schema@.aside_shards(text), @schema@.advance_move(text);
DROP TABLE @schema@.canaries;
