package cgroup

import (
	"math"
	"testing"
	"testing/fstest"
)

func TestMemoryLimit(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"nothing known": {nil, math.MaxInt64},
		"container, version 2": {map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "268435456\n",
		}, 256 << 20},
		"no limit": {map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n",
		}, math.MaxInt64},
		"service, its slice has less": {map[string]string{
			"proc/self/cgroup":                                        "0::/system.slice/postrider.service\n",
			"sys/fs/cgroup/system.slice/memory.max":                   "1000\n",
			"sys/fs/cgroup/system.slice/postrider.service/memory.max": "2000\n",
		}, 1000},
		"version 1": {map[string]string{
			"proc/self/cgroup":                                      "5:cpu:/\n4:memory:/docker/abc\n0::/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":            "9223372036854771712\n",
			"sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": "3000\n",
			"sys/fs/cgroup/cpu/memory.limit_in_bytes":               "1\n",
		}, 3000},
		"version 1, in a container that sees the path of its host": {map[string]string{
			"proc/self/cgroup": "4:memory:/docker/abc\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "4000\n",
		}, 4000},
		"odd": {map[string]string{
			"proc/self/cgroup": "what\n\n0::\n4:memory:../..\n", "sys/fs/cgroup/memory.max": "-1\n",
		}, math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			root := fstest.MapFS{}
			for name, text := range c.files {
				root[name] = &fstest.MapFile{Data: []byte(text)}
			}
			if got := memoryLimit(root); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}
