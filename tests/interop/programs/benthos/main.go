// Benthos with its inputs and outputs for Kafka alone.
package main

import (
	"context"

	"github.com/benthosdev/benthos/v4/public/service"

	_ "github.com/benthosdev/benthos/v4/public/components/kafka"
	_ "github.com/benthosdev/benthos/v4/public/components/pure"
)

func main() { service.RunCLI(context.Background()) }
