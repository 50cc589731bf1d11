package work

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/test/proof/campaign/world"
)

// The kinds of keys besides ordinary ones, with the letter in their names.
const (
	// Unnumbered is the number of keys of each destination whose messages do not contain their
	// numbers.
	Unnumbered = 5
	// Bulk is the number of keys of each destination that only bulk transactions use: no other
	// producer waits for their locks.
	Bulk = 100
	// Flood is the number of keys of each destination that only a flooding tenant uses.
	Flood = 20
)

// Key returns the name of an ordinary key, from 0.
func Key(destination string, i int) string { return fmt.Sprintf("%s-%03d", destination, i) }

// UnnumberedKey returns the name of a key whose writers share no lock except Enqueue's, from 0.
func UnnumberedKey(destination string, i int) string { return fmt.Sprintf("%s-u%d", destination, i) }

// BulkKey returns the name of a key of bulk transactions, from 0.
func BulkKey(destination string, i int) string { return fmt.Sprintf("%s-b%d", destination, i) }

// FloodKey returns the name of a key of the flooding tenant, from 0.
func FloodKey(destination string, i int) string { return fmt.Sprintf("%s-f%d", destination, i) }

// HotKey returns the name of the key that is hot at times.
func HotKey(destination string) string { return destination + "-hot" }

// AwkwardKey returns the name of a key with an unusual spelling, from 0 to Awkward.
func AwkwardKey(destination string, i int) string { return fmt.Sprintf("%s-a%d", destination, i) }

// spellings are keys that a broker, a header, a command line or SQL could misread. The first is no
// key at all. The last has the most characters that the log accepts, and more bytes than the
// library: only SQL can write it.
var spellings = []string{
	"",
	`"quoted" 'key' ` + "`x`",
	`a/b\\c//d`,
	"ключ-鍵-🔑-e\u0301",
	"100%25 %s %00 %zz %",
	"orders.*.>",
	"$SYS.#.{x}[y]",
	"  blanks  at both ends  ",
	"tab\tline\nreturn\r\x01\x7f",
	strings.Repeat("long-", postrider.MaxText)[:postrider.MaxText],
	strings.Repeat("語", postrider.MaxText),
}

// Awkward is the number of awkward keys of each destination.
var Awkward = len(spellings)

// OnlySQL reports whether the library refuses a key.
func OnlySQL(name string) bool { return len(Spelling(name)) > postrider.MaxText }

// Spelling returns the key that messages of a name have. Most keys are spelled like their names;
// records have the names.
func Spelling(name string) string {
	_, number, ok := strings.Cut(name, "-a")
	if i, err := strconv.Atoi(number); ok && err == nil && i < len(spellings) {
		return spellings[i]
	}
	return name
}

var tenants = []string{"", "", "acme", "globex", "Ünïted %7"}

// Tenant returns the tenant of a key: order is that of a tenant's key.
func Tenant(name string) string {
	if _, number, ok := strings.Cut(name, "-f"); ok {
		if _, err := strconv.Atoi(number); err == nil {
			return world.FloodTenant
		}
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(name))
	return tenants[hash.Sum32()%uint32(len(tenants))]
}

// names returns the names of all keys of a destination.
func names(destination string, ordinary int) []string {
	all := []string{HotKey(destination)}
	for _, k := range []struct {
		count int
		name  func(string, int) string
	}{{ordinary, Key}, {Unnumbered, UnnumberedKey}, {Bulk, BulkKey}, {Flood, FloodKey}, {Awkward, AwkwardKey}} {
		for i := range k.count {
			all = append(all, k.name(destination, i))
		}
	}
	return all
}
