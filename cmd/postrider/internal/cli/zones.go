package cli

// Reconcilers run by the clock of a zone, also where the system has no list of zones, as in an empty container.
import _ "time/tzdata"
