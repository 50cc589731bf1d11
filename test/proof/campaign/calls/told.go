package calls

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

const suffix = ".told"

// told is a file of the calls whose effect was confirmed to a client. Every line is written
// immediately, so that a killed client loses none.
type told struct{ file *os.File }

func tell(dir, client string) (*told, error) {
	f, err := os.OpenFile(filepath.Join(dir, client+suffix), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	return &told{f}, err
}

func (t *told) note(kind string, n int64) {
	_, _ = t.file.WriteString(kind + " " + strconv.FormatInt(n, 10) + "\n")
}

func (t *told) close() { _ = t.file.Close() }

// call identifies a call.
type call struct {
	kind, client string
	n            int64
}

// Dump writes the outcome of all calls. All clients must have ended.
func Dump(ctx context.Context, pool *pgxpool.Pool, dir string, w *record.Writer) error {
	acked, err := readTold(dir)
	if err != nil {
		return err
	}
	rows, err := pool.Query(ctx, "SELECT kind, client, n, count(*) FROM campaign.operations GROUP BY 1, 2, 3", pgx.QueryExecModeExec)
	if err != nil {
		return fmt.Errorf("calls: %w", err)
	}
	var c call
	var count int64
	if _, err := pgx.ForEachRow(rows, []any{&c.kind, &c.client, &c.n, &count}, func() error {
		_, wasTold := acked[c]
		delete(acked, c)
		return w.Operation(record.Operation{Kind: c.kind, Client: c.client, N: c.n, Count: count, Acked: wasTold})
	}); err != nil {
		return fmt.Errorf("calls: %w", err)
	}
	for c := range acked {
		if err := w.Operation(record.Operation{Kind: c.kind, Client: c.client, N: c.n, Acked: true}); err != nil {
			return err
		}
	}
	return nil
}

func readTold(dir string) (map[call]struct{}, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return nil, err
	}
	acked := make(map[call]struct{})
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		client := strings.TrimSuffix(filepath.Base(path), suffix)
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			kind, number, _ := strings.Cut(lines.Text(), " ")
			n, err := strconv.ParseInt(number, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("calls: %s: %w", path, err)
			}
			acked[call{kind, client, n}] = struct{}{}
		}
		if err := lines.Err(); err != nil {
			return nil, err
		}
	}
	return acked, nil
}
