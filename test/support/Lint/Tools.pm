package Lint::Tools;

# What other programs check.
use strict;
use warnings;
use Lint::Tree qw(found slurp files cpp_files have);

sub check_format {
    my @files = cpp_files();
    return if !@files || !have('clang-format');
    open my $said, '-|', 'sh', '-c', 'clang-format --dry-run --Werror "$@" 2>&1', 'lint', @files
      or die "lint: clang-format: $!\n";
    my %unformatted;
    while (<$said>) {
        $unformatted{$1} = 1 if /^(\S+?):\d+:\d+: error:/;
    }
    my $passed = close $said;
    found($_, 'not formatted; run make format') for sort keys %unformatted;
    found('clang-format', 'failed; run make format, and see what it says')
      if !$passed && !%unformatted;
    return;
}

sub is_shell {
    my ($file) = @_;
    return if !-s $file || !-T _;
    open my $handle, '<', $file or die "lint: $file: $!\n";
    return readline($handle) =~ m{^#!.*\b(?:ba|da)?sh\b};
}

sub check_shell {
    my @shell = grep { is_shell($_) } files();
    return if !@shell || !have('shellcheck');
    found('shellcheck', 'follow its advice above') if system('shellcheck', '-x', @shell) != 0;
    return;
}

1;
