// Package watermill tests adapter/watermill with the real publishers of Watermill and the real servers behind them.
package watermill
