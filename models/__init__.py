"""Components: frozen dataclasses of measured numbers plus pure functions; knows nothing else of stripesim."""
