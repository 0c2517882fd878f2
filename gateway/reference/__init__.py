"""The reference of the API: one document, as OpenAPI for machines, as a page for people, as Markdown for assistants."""
