package planted

import "slices"

// Mutants returns small mistakes in the PostgreSQL store and in publishers, each of which would lose,
// duplicate, reorder or block messages: most are one condition, bound or operand. They are detected
// by the package's own tests, not by campaigns.
//
// A mutant without an effect for users does not belong here. A surviving mutant means that a test
// is missing.
func Mutants() []Bug {
	return slices.Concat(cursorMutants, ledgerMutants, retentionMutants, moveMutants, recallMutants, deferredMutants)
}

// cursorTest simulates a server.
var cursorTest = Test{"store/postgres", "^TestCursor$"}

// storeTest is a test of the PostgreSQL store on one server; the version makes no difference.
func storeTest(name string) Test { return Test{"store/postgres", "^" + name + "$/^pg18$"} }

// suiteTest is a test of the common store suite.
func suiteTest(name string) Test { return Test{"store/postgres", "^TestStore$/^pg18$/^" + name + "$"} }
