package main

import (
	"context"
	"fmt"

	"github.com/postrider/postrider/test/proof/campaign/world"
)

func skewedCommand(ctx context.Context, args []string) error {
	flags := newFlags("skewed FILE")
	files, err := parse(flags, args)
	if err != nil {
		return err
	}
	if len(files) != 1 {
		return fmt.Errorf("%w: want the name of the binary to be built", errUsage)
	}
	return world.BuildSkewed(ctx, files[0])
}
