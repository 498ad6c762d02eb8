package Session;

# A process that reads commands (psql, or a shell), one for all blocks of a page. It says on a pipe
# of its own that it has come to the end of a block, so that it cannot be confused with output.
use strict;
use warnings;
use IO::Handle;
use IO::Select;
use POSIX qw(dup2 setsid);

# The descriptor by which it says so.
use constant STATUS_FD => 9;

# Runs the command with its output in the file. A group of its own: `stop` ends what it left behind.
sub start {
    my ($class, $output, @command) = @_;
    pipe my $child_in, my $to or die "run_blocks: pipe: $!\n";
    pipe my $from, my $child_status or die "run_blocks: pipe: $!\n";
    my $pid = fork // die "run_blocks: fork: $!\n";
    if ($pid == 0) {
        setsid();
        open STDOUT, '>>', $output or die "run_blocks: $output: $!\n";
        open STDERR, '>&', \*STDOUT or die "run_blocks: $output: $!\n";
        open STDIN, '<&', $child_in or die "run_blocks: stdin: $!\n";
        dup2(fileno $child_status, STATUS_FD) or die "run_blocks: dup2: $!\n";
        exec @command or die "run_blocks: $command[0]: $!\n";
    }
    binmode $to, ':encoding(UTF-8)';
    $to->autoflush(1);
    return bless { pid => $pid, to => $to, from => $from, output => $output }, $class;
}

# Sends a block and how to say that it is over. Returns undef if it came so far, or what happened.
sub run {
    my ($self, $block, $end, $seconds) = @_;
    local $SIG{PIPE} = 'IGNORE';
    truncate $self->{output}, 0;
    my $sent = print { $self->{to} } "$block\n$end\n";
    return $self->over('it ended before') if !$sent;
    return $self->over("not done after $seconds s")
      if !IO::Select->new($self->{from})->can_read($seconds);
    my $line = readline $self->{from};
    return defined $line ? undef : $self->over('it stopped at an error');
}

sub over {
    my ($self, $why) = @_;
    $self->{is_over} = 1;
    return $why;
}

sub is_over { return $_[0]{is_over} }

sub said {
    my ($self) = @_;
    open my $handle, '<:encoding(UTF-8)', $self->{output} or return '';
    local $/ = undef;
    return (readline $handle) // '';
}

# What a block left in the background goes too.
sub stop {
    my ($self) = @_;
    close $self->{to};
    kill 'TERM', -$self->{pid};
    local $SIG{ALRM} = sub { kill 'KILL', -$self->{pid} };
    alarm 5;
    waitpid $self->{pid}, 0;
    alarm 0;
    kill 'KILL', -$self->{pid};
    return;
}

1;
