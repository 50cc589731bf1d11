package cli

import _ "time/tzdata" // for reconcilers on systems without time zones, such as an empty container
