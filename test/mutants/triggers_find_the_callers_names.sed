# What others hang on our tables finds names where the caller of a function looks.
# in: extension
# red: pgtap own_path
/^  (void)set_config_option("search_path"/,/;$/d
