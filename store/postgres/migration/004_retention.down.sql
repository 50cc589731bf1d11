DROP FUNCTION @schema@.rebase();
DROP FUNCTION @schema@.unfrozen_slot();
DROP FUNCTION @schema@.slot_ends(integer);
DROP FUNCTION @schema@.full_xid(xid, xid8);
DROP FUNCTION @schema@.sweep();
DROP TABLE @schema@.swept;
DROP FUNCTION @schema@.reclaim(bigint);
DROP FUNCTION @schema@.check_isolation();
DROP FUNCTION @schema@.slot_passed(integer);
