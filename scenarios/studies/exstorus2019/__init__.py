"""The study of Kim et al. 2019 (ExSTorus-FS): the steps of a coded write as networks get faster."""
