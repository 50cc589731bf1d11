package planted

import "slices"

// Mutants returns small mistakes in the code of the PostgreSQL store, each of which would lose, repeat or disorder messages, or stop them:
// most are one condition, bound or operand. Their tests are those of the place, not campaigns.
//
// A mutant that changes nothing a user could notice does not belong here. One that survives means that a test is missing.
func Mutants() []Bug {
	return slices.Concat(cursorMutants, ledgerMutants, retentionMutants, moveMutants)
}

// cursorTest plays a server, without one.
var cursorTest = Test{"store/postgres", "^TestCursor$"}

// storeTest is a test of the PostgreSQL store, with one server: which one makes no difference to mistakes of ours.
func storeTest(name string) Test { return Test{"store/postgres", "^" + name + "$/^pg18$"} }

// suiteTest is one that every store has to pass.
func suiteTest(name string) Test { return Test{"store/postgres", "^TestStore$/^pg18$/^" + name + "$"} }
