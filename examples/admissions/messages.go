package main

// The types of messages about an application. postrider.yaml maps each of them to a job.
const (
	documentUploaded     = "document_uploaded"
	applicationSubmitted = "application_submitted"
	paymentCompleted     = "payment_completed"
)

// about is the payload of these messages: the application that they are about. The database has the
// rest.
type about struct {
	ApplicationID string   `json:"applicationId"`
	FileIDs       []string `json:"applicationFileIds,omitempty"` // of documentUploaded: all documents of the application
}
