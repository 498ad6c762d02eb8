# The program test/e2e/program.py with settings of its own, and what its processes tell.
package Pulse::ProgramFile;

use strict;
use warnings FATAL => 'all';

use JSON::PP qw(encode_json);
use PostgreSQL::Test::Utils qw(append_to_file);
use Pulse::Lines;

sub new {
    my ($class, $name, %settings) = @_;
    my $folder = PostgreSQL::Test::Utils::tempdir;
    my %files = (path => "$folder/$name.json", told => "$folder/$name.told");
    my $self = bless { folder => $folder, %files }, $class;
    $self->{lines} = Pulse::Lines->new($self->{told});
    $self->set(%settings);
    return $self;
}

# What the next process finds.
sub set {
    my ($self, %settings) = @_;
    unlink $self->{path};
    append_to_file($self->{path}, encode_json({ told => $self->{told}, %settings }));
    return;
}

sub command { return "python3 test/e2e/program.py $_[0]{path}" }

# Of a job that waits: it goes on once open_gate() has been called.
sub gate { return "$_[0]{folder}/gate-$_[1]" }

sub open_gate {
    my ($self, $name) = @_;
    append_to_file($self->gate($name), '');
    return;
}

# The words behind this one in the first line that begins so; `with`: and has these words next.
sub wait_for {
    my ($self, $word, @with) = @_;
    my $wanted = join ' ', $word, @with;
    my $line = $self->{lines}->wait_for($wanted, sub { "$_[0] " =~ /^\Q$wanted\E / });
    return (split / /, $line)[ 1 .. 5 ];
}

sub told {
    my ($self, $word) = @_;
    return grep { /^\Q$word\E / } $self->{lines}->lines;
}

1;
