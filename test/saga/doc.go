// Package saga holds that many sagas come to their end while the processes that run them are killed all the time. What happens at
// every single statement of one is the affair of package points.
package saga
