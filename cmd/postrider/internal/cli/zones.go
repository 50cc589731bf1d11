package cli

// Embed the time zones for reconcilers on systems without them, such as an empty container.
import _ "time/tzdata"
