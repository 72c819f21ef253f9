"""Tables, figures and the page: how artefacts are styled and written."""
