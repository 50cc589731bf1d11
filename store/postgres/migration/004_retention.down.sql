DROP FUNCTION @schema@.rebase();
DROP FUNCTION @schema@.sweep();
DROP FUNCTION @schema@.reclaim();
DROP FUNCTION @schema@.slot_passed(integer);
