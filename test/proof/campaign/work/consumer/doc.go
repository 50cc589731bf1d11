// Package consumer does what messages ask for, with the product's own consumers and its inbox: one effect in the database for each. The HTTP
// receiver is the destination of its messages as well, and notes their receipt.
package consumer
